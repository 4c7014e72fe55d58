-- require: claims.user else /login

-- name: account :one
select id, name, role, opened_at from account where id = :claims.user;

-- name: orders :many
select p.id, p.placed_at, count(l.track_id) as tracks, coalesce(sum(l.price_cents), 0) as price_cents
from purchase p left join purchase_line l on l.purchase_id = p.id
where p.account_id = :claims.user group by p.id, p.placed_at order by p.placed_at desc, p.id desc limit 100;
