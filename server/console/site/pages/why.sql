-- live
-- param: wrong text in ('', target, host) = ''
-- param: target text = ''

-- name: asked :many
select id, at, host, target, body ->> 'kind' as kind, body ->> '$.page.state' as state
from explained
order by id desc
limit 20;
