-- param: q text = ''

-- What is typed becomes a list of quoted words that all count, the last of them a prefix: "page" "cach" *. Nothing finds nothing.
-- The signs around a found word are none that a document has; the template makes elements of them.
-- name: found :many
select docs.folder, docs.slug, docs.title, docs.body, words.heading, snippet(words, 4, char(1), char(2), '…', 30) as piece
from words join docs on docs.folder = words.folder and docs.slug = words.slug
where words match '"' || replace(trim(replace(substr(:q, 1, 100), '"', ' ')), ' ', '" "') || '" *'
order by bm25(words, 0, 0, 0, 4, 1), docs.slug, words.heading limit 30;
