package clinic;

import org.springframework.data.jpa.repository.JpaRepository;

interface Pets extends JpaRepository<Pet, Integer> {}
