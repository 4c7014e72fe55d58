-- What was bought most, of all time.
-- name: tracks :many
select t.id, t.name, t.seconds, t.price_cents, t.album_id, a.title, r.name as artist, count(*) as sold
from purchase_line l join track t on t.id = l.track_id join album a on a.id = t.album_id join artist r on r.id = a.artist_id
group by t.id, t.name, t.seconds, t.price_cents, t.album_id, a.title, r.name
order by sold desc, lower(t.name), t.id limit 20;

-- name: sales :many
select g.id, g.name, g.hue, count(*) as sold, sum(l.price_cents) as cents
from purchase_line l join track t on t.id = l.track_id join album a on a.id = t.album_id join genre g on g.id = a.genre_id
group by g.id, g.name, g.hue order by sold desc, g.name;
