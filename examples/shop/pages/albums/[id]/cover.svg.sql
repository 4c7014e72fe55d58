-- param: id integer

-- name: album :one
select a.id, g.hue from album a join genre g on g.id = a.genre_id where a.id = :id;
