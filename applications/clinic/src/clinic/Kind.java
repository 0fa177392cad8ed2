package clinic;

import jakarta.persistence.Entity;
import jakarta.persistence.Table;

/** What kind of animal a pet is. */
@Entity
@Table(name = "kinds")
public class Kind extends Named {
    protected Kind() {}

    Kind(String name) {
        super(name);
    }
}
