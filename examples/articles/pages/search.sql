-- param: q text = ''

-- Whatever is typed becomes a list of quoted words, the last of them a prefix: "async" "runt" *. Quotes inside become
-- spaces; length() ends at a NUL character, which MATCH would refuse, so substr() cuts there too. The excerpt is made
-- HTML here: the text is escaped, then the two control characters that mark a hit become tags.
-- name: hits :many
select a.id, a.title, a.summary, a.published_at, a.words,
  replace(replace(replace(replace(replace(
    snippet(article_fts, 2, char(2), char(3), '…', 28),
    '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), char(2), '<mark>'), char(3), '</mark>') as excerpt_html
from article_fts join article a on a.id = article_fts.rowid
where article_fts match
  '"' || replace(trim(replace(substr(:q, 1, min(length(:q), 200)), '"', ' ')), ' ', '" "') || '" *'
order by article_fts.rank, a.id limit 30;

-- name: topics :many
select t.id, t.slug, t.name, count(*) as articles
from topic t join article_topic x on x.topic_id = t.id
group by t.id order by articles desc, t.name limit 12;
