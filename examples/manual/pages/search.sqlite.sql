-- param: q text = ''

-- What is typed becomes a list of quoted words that all count, the last of them a prefix: "page" "cach" *. Nothing finds nothing.
-- The signs around a found word are none that a document has; the template makes elements of them.
-- name: found :many
select folder, slug, title, snippet(words, 3, char(1), char(2), '…', 30) as piece
from words
where words match '"' || replace(trim(replace(substr(:q, 1, 100), '"', ' ')), ' ', '" "') || '" *'
order by bm25(words, 0, 0, 10, 1), slug limit 30;
