// Uses a Go client generated from the OpenAPI document.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func check(condition bool, what any) {
	if !condition {
		panic(fmt.Sprintf("%+v", what))
	}
}

func main() {
	token := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("STINT_TOKEN"))
		return nil
	}
	client := must(NewClientWithResponses(os.Getenv("STINT_URL"), WithRequestEditorFn(token)))
	ctx := context.Background()
	quick, slow, wait := "quick", "slow", true

	var half Argument
	if err := half.UnmarshalJSON([]byte("0.5")); err != nil {
		panic(err)
	}
	args := map[string]Argument{"what": half}
	ended := must(client.SubmitRunWithResponse(ctx, nil, Submit{Agent: &quick, Args: &args, Wait: &wait}))
	var run Run
	check(ended.StatusCode() == 200 && json.Unmarshal(ended.Body, &run) == nil, string(ended.Body))
	check(run.Result != nil && *run.Result == "said 0.5", string(ended.Body))

	started := must(client.SubmitRunWithResponse(ctx, nil, Submit{Agent: &slow}))
	check(started.JSON201 != nil, string(started.Body))

	limit := int32(1)
	page := must(client.ListRunsWithResponse(ctx, &ListRunsParams{Limit: &limit}))
	check(page.JSON200 != nil && len(page.JSON200.Runs) == 1, string(page.Body))

	receipt := must(client.CancelRunWithResponse(ctx, started.JSON201.Id))
	check(receipt.JSON200 != nil && receipt.JSON200.State == "cancelled", string(receipt.Body))
	fmt.Println("done")
}
