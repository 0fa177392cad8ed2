package clinic;

import jakarta.persistence.Entity;
import jakarta.persistence.Table;

/** What a vet knows most of. */
@Entity
@Table(name = "specialties")
public class Specialty extends Named {
    protected Specialty() {}

    Specialty(String name) {
        super(name);
    }
}
