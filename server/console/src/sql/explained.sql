insert into explained (at, host, target, body) values (:now, :host, :target, :body) returning id
