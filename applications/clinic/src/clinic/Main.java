package clinic;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** A clinic for pets: owners, their pets, visits, and vets. */
@SpringBootApplication
public class Main {
    public static void main(String[] arguments) {
        SpringApplication.run(Main.class, arguments);
    }
}
