import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.function.Supplier;

import com.github.f4b6a3.uuid.UuidCreator;
import com.github.f4b6a3.uuid.enums.UuidNamespace;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLOutputFactory;
import javax.xml.stream.XMLStreamConstants;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamReader;
import javax.xml.stream.XMLStreamWriter;

/** What examples/uuid does: UUIDs by GET with parameters, and by a POST of XML. */
public final class UuidServlet extends HttpServlet {
    private static final int MOST = 10_000;
    private static final int LONGEST_BODY = 2 << 20;
    private static final XMLInputFactory INPUT = XMLInputFactory.newFactory();
    private static final XMLOutputFactory OUTPUT = XMLOutputFactory.newFactory();

    static {
        INPUT.setProperty(XMLInputFactory.SUPPORT_DTD, false);
        INPUT.setProperty(XMLInputFactory.IS_SUPPORTING_EXTERNAL_ENTITIES, false);
        INPUT.setProperty(XMLInputFactory.IS_COALESCING, true);
    }

    /** How many UUIDs, and what makes each. */
    private record Order(int count, Supplier<UUID> make) {}

    /** What is wrong with a request, in words. */
    private static final class Refused extends Exception {
        Refused(String message) {
            super(message, null, false, false);
        }
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        try {
            answer(response, List.of(order(request::getParameter)));
        } catch (Refused refused) {
            refuse(response, refused.getMessage());
        }
    }

    @Override
    protected void doPost(HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        try {
            if (request.getContentLengthLong() > LONGEST_BODY) {
                throw new Refused("the body is longer than " + LONGEST_BODY + " bytes");
            }
            answer(response, orders(request.getInputStream()));
        } catch (Refused | XMLStreamException refused) {
            refuse(response, refused.getMessage());
        }
    }

    private static List<Order> orders(InputStream body) throws XMLStreamException, Refused {
        XMLStreamReader reader = INPUT.createXMLStreamReader(body);
        try {
            List<Order> orders = new ArrayList<>();
            int depth = 0;
            while (reader.hasNext()) {
                int event = reader.next();
                if (event == XMLStreamConstants.DTD) {
                    throw new Refused("a document type is not expected");
                } else if (event == XMLStreamConstants.END_ELEMENT) {
                    depth--;
                } else if (event == XMLStreamConstants.START_ELEMENT) {
                    String name = reader.getLocalName();
                    if (depth == 0 && name.equals("request")) {
                        depth = 1;
                    } else if (depth == 1 && name.equals("generate-uuid")) {
                        orders.add(order(reader));
                    } else {
                        throw new Refused("<" + name + "> is not expected");
                    }
                }
            }
            return orders;
        } finally {
            reader.close();
        }
    }

    private static Order order(XMLStreamReader reader) throws XMLStreamException, Refused {
        String[] names = {"method", "version", "count", "namespace"};
        String[] values = new String[names.length];
        for (int at = 0; at < names.length; at++) {
            values[at] = reader.getAttributeValue(null, names[at]);
        }
        // It ends at the end of the element, and refuses elements within.
        String text = reader.getElementText();
        return order(name -> {
            for (int at = 0; at < names.length; at++) {
                if (names[at].equals(name)) {
                    return values[at];
                }
            }
            return text.isEmpty() ? null : text;
        });
    }

    private interface Values {
        String get(String name);
    }

    private static Order order(Values values) throws Refused {
        String method = values.get("method");
        String version = values.get("version");
        String count = values.get("count");
        int number;
        try {
            number = count == null ? 1 : Integer.parseInt(count);
        } catch (NumberFormatException error) {
            throw new Refused("count: \"" + count + "\" is not a whole number");
        }
        if (number < 0 || number > MOST) {
            throw new Refused(number + " UUIDs, not from 1 to " + MOST);
        }
        String kind = (method == null ? "RANDOM" : method) + (version == null ? "" : version);
        return new Order(number, switch (kind) {
            case "RANDOM", "RANDOM4" -> UuidCreator::getRandomBasedFast;
            case "TIME", "TIME1" -> UuidCreator::getTimeBased;
            case "TIME7" -> UuidCreator::getTimeOrderedEpochFast;
            case "NAME", "NAME5" -> {
                UUID named = named(values.get("namespace"), values.get("name"));
                yield () -> named;
            }
            default -> throw new Refused("method is RANDOM (4), TIME (1, 7) or NAME (5)");
        });
    }

    private static UUID named(String namespace, String name) throws Refused {
        if (name == null) {
            throw new Refused("name is missing: text");
        }
        try {
            UUID space = switch (namespace == null ? "url" : namespace) {
                case "dns" -> UuidNamespace.NAMESPACE_DNS.getValue();
                case "url" -> UuidNamespace.NAMESPACE_URL.getValue();
                default -> UUID.fromString(namespace);
            };
            return UuidCreator.getNameBasedSha1(space, name);
        } catch (IllegalArgumentException error) {
            throw new Refused("namespace is dns, url or a UUID");
        }
    }

    private static void answer(HttpServletResponse response, List<Order> orders)
            throws IOException, Refused {
        long count = orders.stream().mapToLong(Order::count).sum();
        if (count < 1 || count > MOST) {
            throw new Refused(count + " UUIDs, not from 1 to " + MOST);
        }
        response.setContentType("application/xml");
        try {
            XMLStreamWriter xml =
                    OUTPUT.createXMLStreamWriter(response.getOutputStream(), "UTF-8");
            xml.writeStartDocument("UTF-8", "1.0");
            xml.writeCharacters("\n");
            xml.writeStartElement("response");
            xml.writeCharacters("\n");
            for (Order order : orders) {
                for (int made = 0; made < order.count(); made++) {
                    xml.writeCharacters("  ");
                    xml.writeStartElement("uuid");
                    xml.writeCharacters(order.make().get().toString());
                    xml.writeEndElement();
                    xml.writeCharacters("\n");
                }
            }
            xml.writeEndElement();
            xml.writeCharacters("\n");
            xml.writeEndDocument();
            xml.close();
        } catch (XMLStreamException error) {
            throw new IOException(error);
        }
    }

    private static void refuse(HttpServletResponse response, String message) throws IOException {
        response.reset();
        response.setStatus(400);
        response.setContentType("application/xml");
        try {
            XMLStreamWriter xml =
                    OUTPUT.createXMLStreamWriter(response.getOutputStream(), "UTF-8");
            xml.writeStartDocument("UTF-8", "1.0");
            xml.writeCharacters("\n");
            xml.writeStartElement("error");
            xml.writeCharacters(message);
            xml.writeEndElement();
            xml.writeCharacters("\n");
            xml.close();
        } catch (XMLStreamException error) {
            throw new IOException(error);
        }
    }
}
