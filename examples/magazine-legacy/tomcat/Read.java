import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;

/** Answers /read?id=N, and /brief?id=N with the same queries and a page of under 1 KB. */
public final class Read extends HttpServlet {
    private final transient Articles articles;

    /** Opens the pool, if there is one. */
    public Read() throws ReflectiveOperationException {
        Class.forName("org.postgresql.Driver");
        articles = new Articles();
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String id = request.getParameter("id");
        if (id == null || !id.matches("-?[0-9]{1,18}")) {
            response.sendError(400);
            return;
        }
        Article article;
        try {
            article = articles.get(Long.parseLong(id));
        } catch (SQLException error) {
            response.sendError(503, error.getMessage());
            return;
        }
        if (article == null) {
            response.sendError(404);
            return;
        }
        String page = request.getServletPath().equals("/brief") ? Page.brief(article) : Page.read(article);
        byte[] bytes = page.getBytes(StandardCharsets.UTF_8);
        response.setContentType("text/html; charset=utf-8");
        response.setContentLength(bytes.length);
        response.getOutputStream().write(bytes);
    }
}
