-- require: claims.role = 'editor'

-- A name that a spreadsheet would take for a formula gets a quote in front.
-- name: sales :many
select p.id as purchase, p.placed_at, p.country, t.id as track_id, l.price_cents,
  case when substr(t.name, 1, 1) in ('=', '+', '-', '@') then '''' || t.name else t.name end as track
from purchase p join purchase_line l on l.purchase_id = p.id join track t on t.id = l.track_id
order by p.id, t.id;
