import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What the page of an article shows: the eight queries of examples/articles/pages/read.sql, in their order. A row is a map
 * from the names of its columns to their text.
 */
record Article(
        Map<String, String> article,
        List<Map<String, String>> authors,
        List<Map<String, String>> topics,
        List<Map<String, String>> needs,
        List<Map<String, String>> neededBy,
        List<Map<String, String>> near,
        List<Map<String, String>> comments,
        long said) {

    private static final String RELATED = "select other_id as id, title, summary from related where article_id = ? and kind = ";

    /** Reads the article; null if there is none. */
    static Article read(Connection database, long id) throws SQLException {
        var article = rows(database, id, "select a.id, a.title, a.summary, a.published_at, a.words, a.version, a.license,"
                + " a.repository, a.body_html from article a where a.id = ?");
        if (article.isEmpty()) {
            return null;
        }
        return new Article(
                article.get(0),
                rows(database, id, "select u.slug, u.name from article_author x join author u on u.id = x.author_id"
                        + " where x.article_id = ? order by x.position"),
                rows(database, id, "select t.id, t.slug, t.name from article_topic x join topic t on t.id = x.topic_id"
                        + " where x.article_id = ? order by x.position"),
                rows(database, id, RELATED + "'needs' order by position limit 12"),
                rows(database, id, RELATED + "'needed by' order by position limit 12"),
                rows(database, id, RELATED + "'near' order by position limit 6"),
                rows(database, id, "select id, who, at, body, account_id is not null as signed from comment"
                        + " where article_id = ? order by at desc, id desc limit 20"),
                Long.parseLong(rows(database, id, "select count(*) as comments from comment where article_id = ?")
                        .get(0).get("comments")));
    }

    /** All rows of one query. The driver keeps the statement as long as the connection is open. */
    private static List<Map<String, String>> rows(Connection database, long id, String sql) throws SQLException {
        try (PreparedStatement statement = database.prepareStatement(sql)) {
            statement.setLong(1, id);
            try (ResultSet result = statement.executeQuery()) {
                var columns = result.getMetaData();
                var rows = new ArrayList<Map<String, String>>();
                while (result.next()) {
                    var row = new HashMap<String, String>();
                    for (int n = 1; n <= columns.getColumnCount(); n++) {
                        row.put(columns.getColumnLabel(n), result.getString(n));
                    }
                    rows.add(row);
                }
                return rows;
            }
        }
    }
}
