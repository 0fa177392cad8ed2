package clinic;

import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.Index;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.Table;
import java.time.LocalDate;

@Entity
@Table(name = "visits", indexes = @Index(columnList = "visited"))
public class Visit extends Numbered {
    @Column(name = "visited")
    private LocalDate date;

    private String description;

    @ManyToOne(fetch = FetchType.LAZY)
    private Pet pet;

    protected Visit() {}

    Visit(LocalDate date, String description, Pet pet) {
        this.date = date;
        this.description = description;
        this.pet = pet;
    }

    public LocalDate getDate() {
        return date;
    }

    public String getDescription() {
        return description;
    }

    public Pet getPet() {
        return pet;
    }
}
