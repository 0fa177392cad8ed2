package clinic;

import jakarta.persistence.CascadeType;
import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;

@Entity
@Table(name = "pets")
public class Pet extends Named {
    private LocalDate born;

    @ManyToOne private Kind kind;

    @ManyToOne(fetch = FetchType.LAZY)
    private Owner owner;

    @OneToMany(mappedBy = "pet", cascade = CascadeType.ALL)
    @OrderBy("date, id")
    private List<Visit> visits = new ArrayList<>();

    protected Pet() {}

    Pet(String name, LocalDate born, Kind kind, Owner owner) {
        super(name);
        this.born = born;
        this.kind = kind;
        this.owner = owner;
    }

    public LocalDate getBorn() {
        return born;
    }

    public Kind getKind() {
        return kind;
    }

    public Owner getOwner() {
        return owner;
    }

    public List<Visit> getVisits() {
        return visits;
    }
}
