import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.nio.file.Files;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;

/** A certificate of an authority in the form that Connector/J reads. */
final class TrustStore {
    static final String PASSWORD = "not secret";

    static String of(String certificate) {
        try (var in = new FileInputStream(certificate)) {
            var store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
            store.setCertificateEntry("authority", CertificateFactory.getInstance("X.509").generateCertificate(in));
            var file = Files.createTempFile("remora-drivers-", ".p12");
            file.toFile().deleteOnExit();
            try (var out = new FileOutputStream(file.toFile())) {
                store.store(out, PASSWORD.toCharArray());
            }
            return file.toUri().toString();
        } catch (Exception error) {
            throw new IllegalStateException("can't make a trust store of " + certificate, error);
        }
    }
}
