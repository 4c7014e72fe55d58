-- csv: spreadsheet

-- name: albums :many
select a.id, a.title, r.name as artist, g.name as genre, a.released,
  (select count(*) from track t where t.album_id = a.id) as tracks,
  (select coalesce(sum(t.price_cents), 0) from track t where t.album_id = a.id) as price_cents
from album a join artist r on r.id = a.artist_id join genre g on g.id = a.genre_id order by a.id;
