-- param: page integer from 1 = 1
-- order: sort: name = "lower(r.name), r.id", albums = "r.albums desc, lower(r.name), r.id", since = "r.since, r.id"

-- name: total :one
select count(*) as artists, (count(*) + 29) / 30 as pages from artist
having (count(*) + 29) / 30 >= :page or :page = 1;

-- name: artists :many
select r.id, r.name, r.country, r.since, r.albums, r.album_id, a.cover
from (
  select t.id, t.name, t.country, t.since, count(b.id) as albums, max(b.id) as album_id
  from artist t left join album b on b.artist_id = t.id group by t.id, t.name, t.country, t.since
) r left join album a on a.id = r.album_id
order by :sort limit 30 offset (:page - 1) * 30;
