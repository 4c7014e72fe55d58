delete from seen where id <= (select max(id) from seen) - :most
