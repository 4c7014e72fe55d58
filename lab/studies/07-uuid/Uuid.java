import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.StringReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Instant;
import java.util.UUID;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLStreamConstants;
import javax.xml.stream.XMLStreamException;

/**
 * UUIDs by HTTP in Java: {@code java Uuid.java PORT blocking|events [LOG each|batched]}. With {@code blocking} each connection has a
 * thread that waits for it; with {@code events} one thread asks the kernel which connections have something to read. {@code each} hands
 * every line of the access log to the kernel at once, {@code batched} 64 KB at a time.
 *
 * <p>The requests are those of examples/uuid: {@code GET /uuid?method=TIME&count=3}, or the same as XML by POST.
 */
public final class Uuid {
    private static final XMLInputFactory XML = XMLInputFactory.newInstance();
    private static final AtomicLong LAST = new AtomicLong();
    private static OutputStream log;
    private static boolean flushed;

    private Uuid() {}

    /** Serves until it is ended. */
    public static void main(String[] args) throws IOException {
        XML.setProperty(XMLInputFactory.SUPPORT_DTD, false);
        int port = Integer.parseInt(args[0]);
        if (args.length > 3) {
            log = new BufferedOutputStream(new FileOutputStream(args[2], true), 65_536);
            flushed = args[3].equals("each");
        }
        if (args[1].equals("blocking")) {
            block(port);
        } else {
            events(port);
        }
    }

    private static void block(int port) throws IOException {
        // Threads of connections that are gone wait for new ones.
        var threads = Executors.newCachedThreadPool();
        try (var server = new ServerSocket(port, 4096, InetAddress.getLoopbackAddress())) {
            while (true) {
                Socket socket = server.accept();
                threads.execute(() -> {
                    try (socket) {
                        socket.setTcpNoDelay(true);
                        var connection = new Connection();
                        byte[] buffer = new byte[16_384];
                        for (int n; !connection.closed && (n = socket.getInputStream().read(buffer)) > 0; ) {
                            socket.getOutputStream().write(connection.answers(buffer, n));
                        }
                    } catch (IOException | XMLStreamException | RuntimeException error) {
                        // The client is gone or sent what is no request: its connection is closed.
                    }
                });
            }
        }
    }

    private static void events(int port) throws IOException {
        var selector = Selector.open();
        var server = ServerSocketChannel.open();
        server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 4096);
        server.configureBlocking(false);
        server.register(selector, SelectionKey.OP_ACCEPT);
        var buffer = ByteBuffer.allocate(16_384);
        while (true) {
            selector.select(key -> {
                try {
                    if (key.isAcceptable()) {
                        SocketChannel channel = server.accept();
                        channel.configureBlocking(false);
                        channel.socket().setTcpNoDelay(true);
                        channel.register(selector, SelectionKey.OP_READ, new Connection());
                    } else {
                        ready(key, buffer);
                    }
                } catch (IOException | XMLStreamException | RuntimeException error) {
                    close(key);
                }
            });
        }
    }

    /** Reads what is there and answers it. What the kernel does not take is written when it does. */
    private static void ready(SelectionKey key, ByteBuffer buffer) throws IOException, XMLStreamException {
        var channel = (SocketChannel) key.channel();
        var connection = (Connection) key.attachment();
        if (connection.unsent == null) {
            buffer.clear();
            int n = channel.read(buffer);
            if (n < 0) {
                close(key);
                return;
            }
            connection.unsent = ByteBuffer.wrap(connection.answers(buffer.array(), n));
        }
        channel.write(connection.unsent);
        boolean sent = !connection.unsent.hasRemaining();
        if (sent) {
            connection.unsent = null;
        }
        key.interestOps(sent ? SelectionKey.OP_READ : SelectionKey.OP_WRITE);
        if (sent && connection.closed) {
            close(key);
        }
    }

    private static void close(SelectionKey key) {
        key.cancel();
        try {
            key.channel().close();
        } catch (IOException error) {
            // It is closed.
        }
    }

    /** What a connection has sent of its next request. */
    private static final class Connection {
        private byte[] held = new byte[4096];
        private int length;
        private boolean closed;
        private ByteBuffer unsent;

        /** The answers to all requests that are complete. */
        private byte[] answers(byte[] bytes, int n) throws XMLStreamException, IOException {
            if (length + n > held.length) {
                held = java.util.Arrays.copyOf(held, Math.max(2 * held.length, length + n));
            }
            System.arraycopy(bytes, 0, held, length, n);
            length += n;
            var out = new ByteArrayOutputStream(512);
            for (int used; !closed && (used = answer(out)) > 0; ) {
                System.arraycopy(held, used, held, 0, length - used);
                length -= used;
            }
            return out.toByteArray();
        }

        /** Answers one request and gives its length; 0 if it is not complete. */
        private int answer(ByteArrayOutputStream out) throws XMLStreamException, IOException {
            int head = headEnd();
            if (head < 0) {
                return 0;
            }
            String text = new String(held, 0, head, java.nio.charset.StandardCharsets.ISO_8859_1);
            String lower = text.toLowerCase(java.util.Locale.ROOT);
            int at = lower.indexOf("\r\ncontent-length:");
            int body = at < 0 ? 0 : Integer.parseInt(lower.substring(at + 17, lower.indexOf("\r\n", at + 17)).trim());
            if (length < head + body) {
                return 0;
            }
            closed = lower.contains("\r\nconnection: close");
            String content = text.startsWith("POST")
                    ? posted(new String(held, head, body, java.nio.charset.StandardCharsets.UTF_8))
                    : asked(text.substring(0, text.indexOf("\r\n")));
            out.writeBytes(("HTTP/1.1 200 OK\r\nContent-Type: text/xml; charset=utf-8\r\nContent-Length: " + content.length()
                    + (closed ? "\r\nConnection: close" : "") + "\r\n\r\n" + content).getBytes());
            write(text, content.length());
            return head + body;
        }

        private int headEnd() {
            for (int n = 3; n < length; n++) {
                if (held[n] == '\n' && held[n - 1] == '\r' && held[n - 2] == '\n' && held[n - 3] == '\r') {
                    return n + 1;
                }
            }
            return -1;
        }
    }

    /** {@code GET /uuid?method=TIME&count=3 HTTP/1.1}. */
    private static String asked(String line) {
        String method = "RANDOM";
        int count = 1;
        String target = line.split(" ")[1];
        for (String part : target.substring(target.indexOf('?') + 1).split("&")) {
            if (part.startsWith("method=")) {
                method = part.substring(7);
            } else if (part.startsWith("count=")) {
                count = Integer.parseInt(part.substring(6));
            }
        }
        var out = new StringBuilder(64 + 60 * count).append("<?xml version='1.0' encoding='UTF-8'?>\n<response>\n");
        generate(out, method, count);
        return out.append("</response>\n").toString();
    }

    /** {@code <request><generate-uuid method="TIME" count="3"/></request>}. */
    private static String posted(String body) throws XMLStreamException {
        var out = new StringBuilder("<?xml version='1.0' encoding='UTF-8'?>\n<response>\n");
        var reader = XML.createXMLStreamReader(new StringReader(body));
        while (reader.hasNext()) {
            if (reader.next() == XMLStreamConstants.START_ELEMENT && reader.getLocalName().equals("generate-uuid")) {
                String method = reader.getAttributeValue(null, "method");
                String count = reader.getAttributeValue(null, "count");
                generate(out, method == null ? "RANDOM" : method, count == null ? 1 : Integer.parseInt(count));
            }
        }
        return out.append("</response>\n").toString();
    }

    private static void generate(StringBuilder out, String method, int count) {
        if (count < 1 || count > 10_000) {
            throw new IllegalArgumentException("count is from 1 to 10,000");
        }
        for (int n = 0; n < count; n++) {
            out.append("  <uuid>").append(method.equals("TIME") ? time() : UUID.randomUUID()).append("</uuid>\n");
        }
    }

    /** Version 1: steps of 100 ns since 1582, none given twice, with a fixed node. */
    private static UUID time() {
        Instant now = Instant.now();
        long steps = now.getEpochSecond() * 10_000_000 + now.getNano() / 100 + 0x01B21DD213814000L;
        long time = LAST.updateAndGet(last -> Math.max(last + 1, steps));
        long high = time << 32 | (time >>> 32 & 0xFFFF) << 16 | 0x1000 | time >>> 48 & 0x0FFF;
        return new UUID(high, 0x8000_0200_0000_0001L);
    }

    private static synchronized void write(String head, int bytes) throws IOException {
        if (log == null) {
            return;
        }
        String line = head.substring(0, head.indexOf("\r\n"));
        log.write(("127.0.0.1 - - [" + Instant.now() + "] \"" + line + "\" 200 " + bytes + "\n").getBytes());
        if (flushed) {
            log.flush();
        }
    }
}
