-- GET /api/albums?page=2&genre=3: the catalogue as a list. Behind its end the list is empty.
-- param: genre integer[]
-- param: page integer from 1 = 1
-- param: size integer in (20, 50, 100) = 20
-- json: albums

-- name: albums :many
select a.id, a.title, a.released, a.cover, a.artist_id, r.name as artist, a.genre_id, g.name as genre
from album a join artist r on r.id = a.artist_id join genre g on g.id = a.genre_id
where a.genre_id in (:genre) or not exists (select 1 from genre where id in (:genre))
order by a.id limit :size offset (:page - 1) * :size;
