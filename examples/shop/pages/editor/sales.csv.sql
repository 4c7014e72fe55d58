-- require: claims.role = 'editor'
-- csv: spreadsheet

-- name: sales :many
select p.id as purchase, p.placed_at, p.country, t.id as track_id, l.price_cents, t.name as track
from purchase p join purchase_line l on l.purchase_id = p.id join track t on t.id = l.track_id
order by p.id, t.id;
