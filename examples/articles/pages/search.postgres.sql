-- param: q text = ''

-- Whatever is typed becomes a list of words that all count, the last of them a prefix: async & runt:*. What means something
-- to to_tsquery() becomes a space. The excerpt is made HTML here: the text is escaped, then the two control characters that mark a
-- hit become tags. Only the articles that are shown get one, for it takes the whole text.
-- name: hits :many
with asked as (
  select to_tsquery('english', nullif(replace(btrim(
    regexp_replace(substr(:q, 1, 200), '[[:space:][:cntrl:]!&|()<>:*''"\\]+', ' ', 'g')
  ), ' ', ' & '), '') || ':*') as query
),
best as (
  select a.id, a.title, a.summary, a.published_at, a.words, a.body_text, asked.query,
    ts_rank_cd('{0.1, 0.1, 0.4, 1}', a.search, asked.query) as rank
  from article a, asked where a.search @@ asked.query
  order by rank desc, a.id limit 30
)
select id, title, summary, published_at, words,
  replace(replace(replace(replace(replace(
    ts_headline('english', body_text, query,
      'MaxFragments=1, MinWords=14, MaxWords=28, StartSel=' || chr(2) || ', StopSel=' || chr(3)),
    '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), chr(2), '<mark>'), chr(3), '</mark>') as excerpt_html
from best order by rank desc, id;

-- name: topics :many
select t.id, t.slug, t.name, count(*) as articles
from topic t join article_topic x on x.topic_id = t.id
group by t.id order by articles desc, t.name limit 12;
