package clinic;

import jakarta.persistence.MappedSuperclass;

/** What has a name. */
@MappedSuperclass
public abstract class Named extends Numbered {
    private String name;

    protected Named() {}

    protected Named(String name) {
        this.name = name;
    }

    public String getName() {
        return name;
    }
}
