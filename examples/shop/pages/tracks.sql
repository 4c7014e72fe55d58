-- param: genre integer[]
-- param: most integer = null
-- param: length text in (any, short, long) = any
-- param: page integer from 1 = 1
-- order: sort: name = "lower(t.name), t.id", price = "t.price_cents, lower(t.name), t.id", -length = "t.seconds desc, t.id", length = "t.seconds, t.id"

-- name: total :one
select count(*) as tracks, (count(*) + 39) / 40 as pages
from track t join album a on a.id = t.album_id
where (a.genre_id in (:genre) or not exists (select 1 from genre where id in (:genre)))
  and (t.price_cents <= :most or :most is null)
  and (:length = 'any' or :length = 'short' and t.seconds < 180 or :length = 'long' and t.seconds > 480)
having (count(*) + 39) / 40 >= :page or :page = 1;

-- name: tracks :many
select t.id, t.name, t.seconds, t.price_cents, t.album_id, a.title, a.artist_id, r.name as artist
from track t join album a on a.id = t.album_id join artist r on r.id = a.artist_id
where (a.genre_id in (:genre) or not exists (select 1 from genre where id in (:genre)))
  and (t.price_cents <= :most or :most is null)
  and (:length = 'any' or :length = 'short' and t.seconds < 180 or :length = 'long' and t.seconds > 480)
order by :sort limit 40 offset (:page - 1) * 40;
