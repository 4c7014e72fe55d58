-- param: genre integer[]
-- param: decade integer = null
-- param: page integer from 1 = 1
-- order: sort: newest = "a.released desc, a.id desc", oldest = "a.released, a.id", title = "lower(a.title), a.id", artist = "lower(r.name), a.released, a.id"

-- No ticked genre means all of them.
-- name: total :one
select count(*) as albums, (count(*) + 23) / 24 as pages
from album a
where (a.genre_id in (:genre) or not exists (select 1 from genre where id in (:genre)))
  and (cast(substr(a.released, 1, 4) as integer) / 10 * 10 = :decade or :decade is null)
having (count(*) + 23) / 24 >= :page or :page = 1;

-- name: albums :many
select a.id, a.title, a.released, a.cover, r.name as artist
from album a join artist r on r.id = a.artist_id
where (a.genre_id in (:genre) or not exists (select 1 from genre where id in (:genre)))
  and (cast(substr(a.released, 1, 4) as integer) / 10 * 10 = :decade or :decade is null)
order by :sort limit 24 offset (:page - 1) * 24;
