-- param: id integer
-- name: entry :one
select first, last, street, code, city, phone, email from entries where id = :id;
