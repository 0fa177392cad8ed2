package clinic;

import jakarta.persistence.CascadeType;
import jakarta.persistence.Entity;
import jakarta.persistence.Index;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import jakarta.persistence.Version;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;
import org.hibernate.annotations.CreationTimestamp;

@Entity
@Table(name = "owners", indexes = @Index(columnList = "lastName"))
public class Owner extends Numbered {
    private String firstName;
    private String lastName;
    private String address;
    private String city;
    private String telephone;

    @CreationTimestamp private LocalDateTime created;
    @Version private int version;

    @OneToMany(mappedBy = "owner", cascade = CascadeType.ALL)
    @OrderBy("name, id")
    private List<Pet> pets = new ArrayList<>();

    protected Owner() {}

    Owner(String firstName, String lastName, String address, String city, String telephone) {
        this.firstName = firstName;
        this.lastName = lastName;
        this.address = address;
        this.city = city;
        this.telephone = telephone;
    }

    public String getFirstName() {
        return firstName;
    }

    public String getLastName() {
        return lastName;
    }

    public String getAddress() {
        return address;
    }

    public String getCity() {
        return city;
    }

    public String getTelephone() {
        return telephone;
    }

    void setTelephone(String telephone) {
        this.telephone = telephone;
    }

    public List<Pet> getPets() {
        return pets;
    }
}
