import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;
import org.springframework.jdbc.datasource.AbstractDataSource;
import org.springframework.orm.jpa.EntityManagerFactoryUtils;
import org.springframework.orm.jpa.JpaTransactionManager;
import org.springframework.orm.jpa.vendor.HibernateJpaDialect;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * Hibernate's transactions as Spring begins them for {@code @Transactional}, read-only and not.
 * They run on Connector/J in HikariCP's pool, set up as Spring Boot does it.
 */
final class Hibernate implements TransactionReads.Side, AutoCloseable {
    @Entity(name = "Row")
    @Table(name = "w_reads")
    static class Row {
        @Id int id;

        @Column(name = "value")
        int number;
    }

    private final HikariDataSource pool;
    private final SessionFactory sessions;
    private final JpaTransactionManager manager;

    private Hibernate(String side) {
        var pooling = new HikariConfig();
        pooling.setMaximumPoolSize(1);
        pooling.setDataSource(new AbstractDataSource() {
            @Override
            public Connection getConnection() throws SQLException {
                return Session.connect(side, Session.AS_IT_COMES).raw;
            }

            @Override
            public Connection getConnection(String user, String password) throws SQLException {
                return getConnection();
            }
        });
        pool = new HikariDataSource(pooling);
        var settings = new Configuration().addAnnotatedClass(Row.class);
        settings.getProperties().put("hibernate.connection.datasource", pool);
        settings.setProperty("hibernate.connection.handling_mode", "DELAYED_ACQUISITION_AND_HOLD");
        sessions = settings.buildSessionFactory();
        manager = new JpaTransactionManager(sessions);
        manager.setJpaDialect(new HibernateJpaDialect());
    }

    static void transactionReads() throws Exception {
        try (var direct = new Hibernate("direct"); var remora = new Hibernate("remora")) {
            TransactionReads.check(direct, remora);
        }
    }

    @Override
    public List<String> within(boolean readOnly, List<Integer> before, Environment.Check between, List<Integer> after) {
        var transaction = new TransactionTemplate(manager);
        transaction.setReadOnly(readOnly);
        return transaction.execute(status -> {
            var seen = new ArrayList<>(before.stream().map(this::find).toList());
            try {
                between.run();
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
            after.forEach(id -> seen.add(find(id)));
            return seen;
        });
    }

    private EntityManager entities() {
        return EntityManagerFactoryUtils.getTransactionalEntityManager(sessions);
    }

    private String find(int id) {
        var row = entities().find(Row.class, id);
        entities().detach(row); // or it is remembered, and not read again
        return row.id + " " + row.number;
    }

    @Override
    public void write() {
        entities().createQuery("UPDATE Row SET number = 2 WHERE id = 5").executeUpdate();
    }

    @Override
    public void close() {
        sessions.close();
        pool.close();
    }
}
