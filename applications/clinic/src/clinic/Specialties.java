package clinic;

import org.springframework.data.jpa.repository.JpaRepository;

interface Specialties extends JpaRepository<Specialty, Integer> {}
