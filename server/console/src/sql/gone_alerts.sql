delete from alert where name not in (select r.value ->> 0 from json_each(:rules) r)
