package clinic;

import java.time.LocalDate;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.CommandLineRunner;
import org.springframework.context.annotation.Profile;
import org.springframework.stereotype.Component;
import org.springframework.transaction.annotation.Transactional;

/** Vets, owners with their pets, and their visits. */
@Component
@Profile("fill")
class Fill implements CommandLineRunner {
    private static final LocalDate FIRST = LocalDate.of(2020, 1, 1);
    private static final List<String> NAMES = List.of(
            "Anna", "Bela", "Carlos", "Dina", "Edgar", "Filipa", "Gil", "Helena", "Ivo", "Joana", "Karl", "Lena");
    private static final List<String> STREETS = List.of("Harbour", "Garden", "River", "Market", "Orchard", "Bridge");
    private static final List<String> PETS = List.of("Biscuit", "Clover", "Moss", "Pepper", "Shadow", "Willow");
    private static final List<String> REASONS = List.of("a cough", "a vaccination", "a sore paw", "teeth", "a check");

    private final Owners owners;
    private final Vets vets;
    private final Kinds kinds;
    private final Specialties specialties;
    private final Random chance;

    Fill(Owners owners, Vets vets, Kinds kinds, Specialties specialties, @Value("${clinic.seed}") long seed) {
        this.owners = owners;
        this.vets = vets;
        this.kinds = kinds;
        this.specialties = specialties;
        chance = new Random(seed);
    }

    @Override
    @Transactional
    public void run(String... arguments) {
        var kinds = Stream.of("bird", "cat", "dog", "hamster", "lizard", "rabbit").map(this::kind).toList();
        var skills = Stream.of("dentistry", "radiology", "surgery").map(this::specialty).toList();
        for (int number = 0; number < 18; number++) {
            var of = new LinkedHashSet<>(skills.subList(0, chance.nextInt(skills.size() + 1)));
            vets.save(new Vet(one(NAMES) + " " + one(STREETS) + " " + number, of));
        }
        for (int number = 0; number < 150; number++) {
            owners.save(owner(number, kinds));
        }
    }

    private Kind kind(String name) {
        return kinds.save(new Kind(name));
    }

    private Specialty specialty(String name) {
        return specialties.save(new Specialty(name));
    }

    private Owner owner(int number, List<Kind> kinds) {
        var street = one(STREETS) + " street " + number;
        var telephone = Integer.toString(210_000_000 + chance.nextInt(700_000_000));
        var owner = new Owner(one(NAMES), one(STREETS) + "man", street, "Lisbon", telephone);
        for (int pets = chance.nextInt(4); pets > 0; pets--) {
            var pet = new Pet(one(PETS), day(), one(kinds), owner);
            owner.getPets().add(pet);
            for (int visits = chance.nextInt(4); visits > 0; visits--) {
                pet.getVisits().add(new Visit(day(), one(REASONS), pet));
            }
        }
        return owner;
    }

    private LocalDate day() {
        return FIRST.plusDays(chance.nextInt(2_000));
    }

    private <T> T one(List<T> all) {
        return all.get(chance.nextInt(all.size()));
    }
}
