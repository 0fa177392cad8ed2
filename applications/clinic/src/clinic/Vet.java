package clinic;

import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import java.util.LinkedHashSet;
import java.util.Set;

@Entity
@Table(name = "vets")
public class Vet extends Named {
    @ManyToMany(fetch = FetchType.EAGER)
    @OrderBy("name")
    private Set<Specialty> specialties = new LinkedHashSet<>();

    protected Vet() {}

    Vet(String name, Set<Specialty> specialties) {
        super(name);
        this.specialties = specialties;
    }

    public Set<Specialty> getSpecialties() {
        return specialties;
    }
}
