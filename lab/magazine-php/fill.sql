-- Fills the magazine's tables: `psql -v articles=1000 -f fill.sql`. Always the same rows: each article has
-- 720 words, 14 relations and 25 comments, which makes a page of about 13 KB. At least 100 articles.

begin;

create temporary table word as
select n - 1 as n, word from unnest(string_to_array(
  'the a of and to in is that for it with as on by at from this which cache page query row table index lock thread socket '
  'buffer kernel request response server client value order time state commit reader writer file block memory queue '
  'record field change stream number branch line every never often each other small large first last same', ' '))
  with ordinality as x (word, n);

-- A word that depends on the two numbers and nothing else.
create function pg_temp.word_of(a bigint, b bigint) returns text language sql stable as
$$ select word from word where n = abs(hashint8(a * 4099 + b)::bigint) % (select count(*) from word) $$;

insert into author (id, slug, name)
select n, 'author-' || n, initcap(pg_temp.word_of(n, 1)) || ' ' || initcap(pg_temp.word_of(n, 2)) || ' & O''Neill'
from generate_series(1, 50) n;

insert into topic (id, slug, name, summary)
select n, 'topic-' || n, initcap(pg_temp.word_of(n, 3)) || ' ' || n, 'About ' || pg_temp.word_of(n, 4) || '.'
from generate_series(1, 20) n;

create temporary table paragraph as
select a.n, p, string_agg(w.word, ' ' order by s) as said
from generate_series(1, :articles) a (n), generate_series(1, 12) p, generate_series(1, 60) s, word w
where w.n = abs(hashint8((a.n * 12 + p) * 4099 + s)::bigint) % (select count(*) from word)
group by a.n, p;

create index on paragraph (n, p);
analyze paragraph;

insert into article (id, slug, title, summary, published_at, words, version, license, repository, body_html, body_text)
select 50000000 + n, 'article-' || n,
  initcap(pg_temp.word_of(n, 5)) || ' ' || pg_temp.word_of(n, 6) || ' ' || pg_temp.word_of(n, 7) || ' ' || n,
  'How ' || pg_temp.word_of(n, 8) || ' & ' || pg_temp.word_of(n, 9) || ' meet "' || pg_temp.word_of(n, 10) || '".',
  to_char(timestamp '2026-01-01 08:00' + n * interval '7 hours', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
  720, '1.' || n % 30 || '.0', 'MIT OR Apache-2.0', 'https://example.org/part/' || n,
  (select string_agg('<p>' || said || '.</p>', E'\n' order by p) from paragraph x where x.n = a.n),
  (select string_agg(said || '.', E'\n' order by p) from paragraph x where x.n = a.n)
from generate_series(1, :articles) a (n);

insert into article_author (article_id, author_id, position)
select 50000000 + n, 1 + (n + 7 * p) % 50, p from generate_series(1, :articles) n, generate_series(0, 1) p;

insert into article_topic (article_id, topic_id, position)
select 50000000 + n, 1 + (n + 3 * p) % 20, p from generate_series(1, :articles) n, generate_series(0, 1) p;

-- Four that it is built on, four that need it, and six neighbours.
insert into related (article_id, other_id, kind, position, title, summary)
select 50000000 + n, other.id, x.kind, x.position, other.title, other.summary
from generate_series(1, :articles) n,
  (select p, case when p <= 4 then 'needs' when p <= 8 then 'needed by' else 'near' end, p,
    case when p <= 4 then p when p <= 8 then 4 - p else p + 2 end
   from generate_series(1, 14) p) x (p, kind, position, away),
  article other
where other.id = 50000001 + (n - 1 + x.away + :articles) % :articles;

insert into comment (article_id, who, body, at)
select 50000000 + n, 'Reader ' || c, left(x.said, 20 + c::integer) || ' & so on.',
  to_char(timestamp '2026-09-01' + (n * 25 + c) * interval '1 minute', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
from generate_series(1, :articles) n cross join generate_series(1, 25) c join paragraph x using (n)
where x.p = 1 + c % 12
order by n, c;

commit;

analyze;
