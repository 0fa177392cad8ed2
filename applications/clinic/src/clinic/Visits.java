package clinic;

import java.util.List;
import org.springframework.data.domain.Pageable;
import org.springframework.data.jpa.repository.JpaRepository;
import org.springframework.data.jpa.repository.Query;

interface Visits extends JpaRepository<Visit, Integer> {
    /** How often pets of a kind came. */
    record OfKind(String kind, long count) {}

    @Query("select v from Visit v join fetch v.pet p join fetch p.owner order by v.date desc, v.id desc")
    List<Visit> findLast(Pageable page);

    @Query("select k.name as kind, count(v) as count from Visit v join v.pet p join p.kind k"
            + " group by k.name order by k.name")
    List<OfKind> countByKind();
}
