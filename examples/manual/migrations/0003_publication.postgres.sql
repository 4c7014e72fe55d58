-- The tables whose changes PostgreSQL sends to the server.
create publication millpond for table docs, sections, internals, passages;
