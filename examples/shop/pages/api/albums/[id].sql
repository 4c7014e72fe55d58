-- GET /api/albums/7: an album with its tracks
-- param: id integer

-- name: album :one
select a.id, a.title, a.released, a.cover, a.artist_id, r.name as artist, a.genre_id, g.name as genre
from album a join artist r on r.id = a.artist_id join genre g on g.id = a.genre_id where a.id = :id;

-- name: tracks :many
select id, position, name, seconds, price_cents from track where album_id = :id order by position;
