import java.net.InetSocketAddress;

import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/** {@code UuidServer PORT}: serves {@link UuidServlet} on loopback until it is ended. */
public final class UuidServer {
    public static void main(String[] arguments) throws Exception {
        Server server = new Server(new QueuedThreadPool(64));
        HttpConfiguration settings = new HttpConfiguration();
        settings.setSendServerVersion(false);
        // One acceptor and one selector: the server has one core.
        ServerConnector connector =
                new ServerConnector(server, 1, 1, new HttpConnectionFactory(settings));
        connector.setHost("127.0.0.1");
        connector.setPort(Integer.parseInt(arguments[0]));
        server.addConnector(connector);
        ServletContextHandler context = new ServletContextHandler();
        context.addServlet(UuidServlet.class, "/uuid");
        server.setHandler(context);
        server.start();
        System.out.println("serving http://127.0.0.1:" + connector.getLocalPort());
        server.join();
    }
}
