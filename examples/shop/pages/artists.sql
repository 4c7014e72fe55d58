-- param: page integer = 1
-- order: sort: name = "lower(r.name), r.id", albums = "count(a.id) desc, lower(r.name), r.id", since = "r.since, r.id"

-- name: total :one
select count(*) as artists, (count(*) + 29) / 30 as pages from artist;

-- name: artists :many
select r.id, r.name, r.country, r.since, count(a.id) as albums, max(a.id) as album_id
from artist r left join album a on a.artist_id = r.id
group by r.id, r.name, r.country, r.since order by :sort limit 30 offset (:page - 1) * 30;
