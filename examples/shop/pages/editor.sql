-- require: claims.role = 'editor' else /login
-- param: q text = ''
-- param: page integer from 1 = 1

-- name: total :one
select count(*) as albums, (count(*) + 29) / 30 as pages from album a join artist r on r.id = a.artist_id
where lower(a.title) like '%' || lower(:q) || '%' or lower(r.name) like '%' || lower(:q) || '%'
having (count(*) + 29) / 30 >= :page or :page = 1;

-- name: albums :many
select a.id, a.title, a.released, r.name as artist, g.name as genre,
  (select count(*) from track t where t.album_id = a.id) as tracks
from album a join artist r on r.id = a.artist_id join genre g on g.id = a.genre_id
where lower(a.title) like '%' || lower(:q) || '%' or lower(r.name) like '%' || lower(:q) || '%'
order by a.id desc limit 30 offset (:page - 1) * 30;
