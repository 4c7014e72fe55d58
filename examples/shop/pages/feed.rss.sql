-- name: albums :many
select a.id, a.title, a.released, r.name as artist, g.name as genre
from album a join artist r on r.id = a.artist_id join genre g on g.id = a.genre_id
order by a.released desc, a.id desc limit 20;
