package clinic;

import org.springframework.data.domain.Page;
import org.springframework.data.domain.Pageable;
import org.springframework.data.jpa.repository.JpaRepository;

interface Owners extends JpaRepository<Owner, Integer> {
    Page<Owner> findByLastNameStartingWithOrderByLastNameAscIdAsc(String beginning, Pageable page);
}
