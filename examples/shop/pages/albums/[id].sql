-- param: id integer

-- name: album :one
select a.id, a.title, a.released, a.cover, a.artist_id, r.name as artist, a.genre_id, g.name as genre, g.hue
from album a join artist r on r.id = a.artist_id join genre g on g.id = a.genre_id
where a.id = :id;

-- name: tracks :many
select id, position, name, seconds, price_cents from track where album_id = :id order by position;

-- name: total :one
select coalesce(sum(seconds), 0) as seconds, coalesce(sum(price_cents), 0) as price_cents from track where album_id = :id;

-- name: reviews :many
select id, headline, author, body, at from review where album_id = :id order by at desc, id desc limit 50;

-- name: others :many
select a.id, a.title, a.released, a.cover, r.name as artist
from album me join album a on a.artist_id = me.artist_id join artist r on r.id = a.artist_id
where me.id = :id and a.id <> :id order by a.released desc, a.id desc limit 6;
