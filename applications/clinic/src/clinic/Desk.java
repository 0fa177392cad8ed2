package clinic;

import java.time.LocalDate;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/** What changes something. */
@Service
@Transactional
public class Desk {
    private final Owners owners;
    private final Pets pets;
    private final Visits visits;

    Desk(Owners owners, Pets pets, Visits visits) {
        this.owners = owners;
        this.pets = pets;
        this.visits = visits;
    }

    public Owner add(Owner owner) {
        return owners.save(owner);
    }

    public void changeTelephone(int id, String telephone) {
        owners.findById(id).orElseThrow().setTelephone(telephone);
    }

    /** Notes a visit; tells whose pet came. */
    public int addVisit(int id, LocalDate date, String description) {
        var pet = pets.findById(id).orElseThrow();
        visits.save(new Visit(date, description, pet));
        return pet.getOwner().getId();
    }
}
