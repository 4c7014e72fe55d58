-- The name of the file puts the last part of the address into :id.
-- param: id integer

-- name: note :one
select id, title, body, at from note where id = :id;
