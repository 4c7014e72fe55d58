-- param: id integer

-- name: artist :one
select id, name, country, since, about from artist where id = :id;

-- name: albums :many
select a.id, a.title, a.released, a.cover, r.name as artist
from album a join artist r on r.id = a.artist_id
where a.artist_id = :id order by a.released desc, a.id desc;
