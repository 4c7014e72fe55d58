import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.tomcat.jdbc.pool.DataSource;
import org.apache.tomcat.jdbc.pool.PoolProperties;

/**
 * The articles of the database, by one of three ways that the environment chooses:
 *
 * <ul>
 * <li>POOL=0: each request opens a connection of its own and closes it.
 * <li>POOL=10: ten connections, opened at the start, which all requests share.
 * <li>KEEP=1 beside it: an article stays in memory for one second and is read again after that.
 * </ul>
 */
final class Articles {
    private record Kept(Article article, long until) {}

    private final String url = System.getenv("DATABASE_URL");
    private final long keepNanos = number("KEEP") * 1_000_000_000L;
    private final DataSource pool = number("POOL") == 0 ? null : pool((int) number("POOL"));
    private final ConcurrentHashMap<Long, Kept> kept = new ConcurrentHashMap<>();

    /** The article; null if there is none. */
    Article get(long id) throws SQLException {
        Kept known = kept.get(id);
        if (known != null && System.nanoTime() < known.until) {
            return known.article;
        }
        Article article;
        try (Connection database = pool == null ? DriverManager.getConnection(url) : pool.getConnection()) {
            article = Article.read(database, id);
        }
        if (keepNanos > 0 && article != null) {
            kept.put(id, new Kept(article, System.nanoTime() + keepNanos));
        }
        return article;
    }

    /** A request waits at most five seconds for a connection. */
    private DataSource pool(int connections) {
        var properties = new PoolProperties();
        properties.setDriverClassName("org.postgresql.Driver");
        properties.setUrl(url);
        properties.setInitialSize(connections);
        properties.setMinIdle(connections);
        properties.setMaxIdle(connections);
        properties.setMaxActive(connections);
        properties.setMaxWait(5000);
        return new DataSource(properties);
    }

    private static long number(String name) {
        return Long.parseLong(System.getenv().getOrDefault(name, "0"));
    }
}
