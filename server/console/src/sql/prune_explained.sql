delete from explained where id <= (select max(id) from explained) - :most
