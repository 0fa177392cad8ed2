package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// connection is one connection of the pool, so that a session's state stays with it.
type connection struct {
	*sql.Conn
	db *sql.DB
}

var background = context.Background()

func configuration(side string) *mysql.Config {
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", os.Getenv("DRIVER_HOST")+":"+ports[side]
	config.User, config.Passwd = os.Getenv("DRIVER_USER"), os.Getenv("DRIVER_PASSWORD")
	config.DBName = os.Getenv("DRIVER_SCHEMA")
	config.MaxAllowedPacket = 64 << 20
	if withTLS {
		config.TLS = trusting(os.Getenv("DRIVER_TLS_CA"))
	}
	return config
}

func tryConnect(side string, change func(*mysql.Config)) (*connection, error) {
	config := configuration(side)
	if change != nil {
		change(config)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	one, err := db.Conn(background)
	if err != nil {
		db.Close()
		return nil, err
	}
	return &connection{one, db}, nil
}

func connect(side string, change func(*mysql.Config)) *connection {
	return must(tryConnect(side, change))
}

func (c *connection) close() {
	c.Conn.Close()
	c.db.Close()
}

// describe shows an error with all of its parts.
func describe(err error) string {
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		return fmt.Sprintf("error %d %s %s", server.Number, server.SQLState, server.Message)
	}
	return "error " + err.Error()
}

// read shows a result with everything that the driver tells of its columns. Arguments make it a prepared statement.
func (c *connection) read(text string, arguments ...any) string {
	rows, err := c.QueryContext(background, text, arguments...)
	if err != nil {
		return describe(err)
	}
	return showRows(rows)
}

// readPrepared is the same by a statement that is prepared first, also without arguments.
func (c *connection) readPrepared(text string, arguments ...any) string {
	statement, err := c.PrepareContext(background, text)
	if err != nil {
		return describe(err)
	}
	defer statement.Close()
	rows, err := statement.QueryContext(background, arguments...)
	if err != nil {
		return describe(err)
	}
	return showRows(rows)
}

// showRows shows all results that there are.
func showRows(rows *sql.Rows) string {
	defer rows.Close()
	var shown strings.Builder
	for {
		types := must(rows.ColumnTypes())
		for _, column := range types {
			nullable, hasNullable := column.Nullable()
			precision, scale, hasScale := column.DecimalSize()
			length, hasLength := column.Length()
			fmt.Fprintf(&shown, "%q %s %v %v%v %v.%v%v %v%v\n", column.Name(), column.DatabaseTypeName(), column.ScanType(),
				nullable, hasNullable, precision, scale, hasScale, length, hasLength)
		}
		for rows.Next() {
			values, places := make([]any, len(types)), make([]any, len(types))
			for index := range values {
				places[index] = &values[index]
			}
			if err := rows.Scan(places...); err != nil {
				return shown.String() + describe(err)
			}
			for _, value := range values {
				if bytes, long := value.([]byte); long && len(bytes) > 1000 {
					value = digest(bytes)
				}
				fmt.Fprintf(&shown, "%T %#v\n", value, value)
			}
		}
		if err := rows.Err(); err != nil {
			return shown.String() + describe(err)
		}
		if !rows.NextResultSet() {
			if err := rows.Err(); err != nil {
				return shown.String() + describe(err)
			}
			return shown.String()
		}
	}
}

// write shows what the driver tells of a write.
func (c *connection) write(text string, arguments ...any) string {
	result, err := c.ExecContext(background, text, arguments...)
	if err != nil {
		return describe(err)
	}
	id, _ := result.LastInsertId()
	affected, _ := result.RowsAffected()
	return fmt.Sprintf("id %d, %d rows", id, affected)
}

// run runs statements that must not fail.
func (c *connection) run(texts ...string) {
	for _, text := range texts {
		must(c.ExecContext(background, text))
	}
}

// value gives a result's only value.
func value[T any](c *connection, text string, arguments ...any) T {
	var seen T
	err := c.QueryRowContext(background, text, arguments...).Scan(&seen)
	expect(err == nil, err)
	return seen
}
