package clinic;

import org.springframework.data.jpa.repository.JpaRepository;

interface Kinds extends JpaRepository<Kind, Integer> {}
