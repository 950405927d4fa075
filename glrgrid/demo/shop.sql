-- The shop of the demo: what glrgrid/demo/corpus.py writes statements about.

CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, email TEXT, city TEXT, country TEXT, since DATE);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, total REAL, status TEXT, created_at DATE);
CREATE TABLE products (id INTEGER PRIMARY KEY, title TEXT, price REAL, stock INTEGER, category TEXT);
CREATE TABLE reviews (id INTEGER PRIMARY KEY, product_id INTEGER, rating INTEGER, body TEXT);
CREATE TABLE employees (id INTEGER PRIMARY KEY, first_name TEXT, department TEXT, salary INTEGER);

INSERT INTO customers (name, email, city, country, since) VALUES
    ('Ana', 'ana@example.com', 'Lisbon', 'Portugal', '2021-03-09'),
    ('Bo', 'bo@example.com', 'Oslo', 'Norway', '2022-11-30'),
    ('Chidi', 'chidi@example.com', 'Oslo', 'Norway', '2023-01-17'),
    ('Dara', 'dara@example.com', 'Lisbon', 'Portugal', '2024-05-01');
INSERT INTO orders (customer_id, total, status, created_at) VALUES
    (1, 19.99, 'paid', '2024-05-01'), (1, 250, 'shipped', '2024-05-03'), (2, 42, 'open', '2024-06-10'),
    (3, 100, 'paid', '2024-06-11'), (3, 5, 'open', '2024-07-02'), (4, 10, 'shipped', '2024-07-15');
INSERT INTO products (title, price, stock, category) VALUES
    ('Blue in Green', 19.99, 5, 'music'), ('Fjords', 42, 2, 'books'), ('Azulejo', 10, 100, 'art'),
    ('Blue', 19.99, 10, 'music');
INSERT INTO reviews (product_id, rating, body) VALUES
    (1, 5, 'blue indeed'), (1, 4, 'more like it'), (2, 2, 'too many of them'), (4, 5, 'a classic');
INSERT INTO employees (first_name, department, salary) VALUES
    ('Eve', 'sales', 52000), ('Finn', 'sales', 48000), ('Gita', 'stock', 61000);
